#if Server
  import CairnRecords
  import CairnServer
  import CairnServerCore
  import Foundation

  /// `cairn server key add`
  enum ServerKeyAddCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "key", "add"], summary: "Lets another server in that signs its requests",
      discussion: """
        The key opens the public database and nothing else. Give its public half in PEM, or have a pair made, whose private \
        half is written to a file. The key ID that is shown goes into X-Apple-CloudKit-Request-KeyID.
        """,
      positionals: [CredentialCommand.name, .optional("FILE", "PEM file with the public key, - for standard input")],
      options: StorePlace.options + [
        CredentialCommand.container, CredentialCommand.switches,
        .value("generate", "FILE", "make a pair and write the private key to this file, which must not exist"),
      ],
      example: "cairn server key add nightly-job public.pem --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      let switches = try CredentialCommand.switches(arguments)
      let key = try key(arguments, context)
      let made = arguments.value("generate")
      if let made { try writePrivate(key, made) }
      let id: String
      do {
        id = try CredentialCommand.administer(.serverKey, arguments, creating: context) { (apps) throws(CloudError) in
          try apps.addKey(name, key, container: arguments.value("container"), switches: switches)
        }
      } catch {
        // A private key without use would only be in the way of the next try.
        if let made { unlink(made) }
        throw error
      }
      context.output.report(
        [
          "name": .string(name), "keyID": .string(id), "privateKeyFile": JSONValue(made),
        ]) { "key ID \(id)" + (made.map { "\nThe private key is in \($0): it is nowhere else." } ?? "") }
      return .done
    }

    private static func key(_ arguments: Arguments, _ context: CommandContext) throws -> P256Key {
      guard arguments.value("generate") == nil else {
        guard arguments.optional("FILE") == nil else {
          throw CommandError.usage("a public key and --generate exclude each other", remedy: "give one of them")
        }
        guard let key = P256Key.generate() else {
          throw CommandError(
            .failed, "libcrypto can't make a key", remedy: "make one with openssl ecparam -name prime256v1 -genkey")
        }
        return key
      }
      guard let file = arguments.optional("FILE") else {
        throw CommandError.usage("the public key is missing", remedy: "give its PEM file, or --generate FILE")
      }
      guard let key = P256Key(pem: try text(file, context)) else {
        throw CommandError(
          .failed, "\(file) holds no P-256 key in PEM",
          remedy: "make one with openssl ecparam -name prime256v1 -genkey -noout, and give its public half")
      }
      return key
    }

    private static func text(_ file: String, _ context: CommandContext) throws -> String {
      if file == "-" {
        var lines: [String] = []
        while let line = context.readInput() { lines.append(line) }
        return lines.joined(separator: "\n") + "\n"
      }
      do { return try String(contentsOfFile: file, encoding: .utf8) } catch {
        throw CommandError(.failed, "\(file) can't be read", remedy: "check the file and its permissions")
      }
    }

    private static func writePrivate(_ key: P256Key, _ path: String) throws {
      guard let text = key.privatePEM else {
        throw CommandError(.failed, "the key can't be written", remedy: "make one with openssl")
      }
      let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else {
        throw CommandError(
          .failed, "\(path) can't be created (\(String(cString: strerror(errno))))",
          remedy: "give a file that does not exist, in a folder that can be written to")
      }
      defer { close(descriptor) }
      let bytes = Array(text.utf8)
      guard write(descriptor, bytes, bytes.count) == bytes.count else {
        throw CommandError(.failed, "\(path) can't be written", remedy: "check the disk")
      }
    }
  }

  /// `cairn server key list`
  enum ServerKeyListCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "key", "list"], summary: "Lists the keys of servers that may sign requests",
      options: StorePlace.options, example: "cairn server key list --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      try CredentialCommand.list(.serverKey, arguments, context)
    }
  }

  /// `cairn server key remove`
  enum ServerKeyRemoveCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "key", "remove"], summary: "Ends a server-to-server key", positionals: [CredentialCommand.name],
      options: StorePlace.options, example: "cairn server key remove nightly-job --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      try CredentialCommand.remove(.serverKey, arguments, context)
    }
  }
#endif
