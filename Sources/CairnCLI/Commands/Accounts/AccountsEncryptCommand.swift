import Cairn
import CairnAccounts
import CairnSodium
import Foundation

/// `cairn accounts encrypt`
enum AccountsEncryptCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "encrypt"], summary: "Encrypts the credentials of a profile with a passphrase",
    discussion: """
      The passphrase is CAIRN_PASSPHRASE, else one line of standard input. From then on every command that reads or \
      writes a secret needs it in CAIRN_PASSPHRASE; the others work without. Nobody can bring a forgotten one back: \
      then sign in to the accounts again.
      """,
    positionals: [AccountsProfile.positional], example: "cairn accounts encrypt phone < passphrase.txt")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let profile = try AccountsProfile.open(arguments)
      let lock = try FileLock(database: profile.database)
      return try withExtendedLifetime(lock) {
        guard let passphrase = AccountsPassphrase.given() ?? context.readInput(), !passphrase.isEmpty else {
          throw CommandError.usage(
            "there is no passphrase", remedy: "set CAIRN_PASSPHRASE, or pipe it into the command")
        }
        let store = try AccountsPassphrase.store(profile.folder, passphrase: passphrase, settingUp: true)
        let count = try AccountsPassphrase.explained(profile.folder) { try store.sealAll() }
        context.output.report(["encrypted": JSONValue(count)]) { "encrypted \(count) credentials" }
        return .done
      }
    }
  }
}

/// The passphrase of a profile whose credentials are encrypted.
enum AccountsPassphrase {
  /// What CAIRN_PASSPHRASE says; nil where it is empty or not set.
  static func given() -> String? {
    ProcessInfo.processInfo.environment["CAIRN_PASSPHRASE"].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// The credentials of a profile. Where they are encrypted and there is no passphrase, they are not to be had.
  static func store(_ folder: String, passphrase: String?, settingUp: Bool = false) throws -> FileCredentialStore {
    let directory = URL(fileURLWithPath: folder + "/credentials")
    return try explained(folder) {
      let plain = try FileCredentialStore(directory: directory)
      guard settingUp || SodiumEncryption.isSetUp(in: directory) else { return plain }
      guard let passphrase else { return try FileCredentialStore(directory: directory, encryption: Locked()) }
      return try FileCredentialStore(
        directory: directory, encryption: SodiumEncryption(passphrase: passphrase, folder: directory))
    }
  }

  /// Refuses to go on without the passphrase, before anything is changed.
  static func demand(for profile: AccountsProfile) throws {
    let directory = URL(fileURLWithPath: profile.folder + "/credentials")
    guard SodiumEncryption.isSetUp(in: directory), given() == nil else { return }
    throw CommandError(
      .failed, "the credentials of \(profile.folder) are encrypted", remedy: "set CAIRN_PASSPHRASE and run it again")
  }

  static func explained<Result>(_ folder: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch SodiumError.wrongPassphrase {
      throw CommandError(.failed, "\(SodiumError.wrongPassphrase)", remedy: "correct CAIRN_PASSPHRASE")
    } catch let error as SodiumError {
      throw CommandError(.failed, "\(error)", remedy: "restore the folder \(folder)/credentials")
    } catch let error as CredentialStoreError {
      throw CommandError(.failed, error.description, remedy: "make the folder \(folder) writable")
    }
  }

  /// In place of an encryption whose passphrase is not here: nothing is read, nothing written.
  private struct Locked: FileEncryption {
    func seal(_ plain: Data) throws -> Data { throw SodiumError.wrongPassphrase }
    func open(_ sealed: Data) throws -> Data { throw SodiumError.notOpened }
  }
}
