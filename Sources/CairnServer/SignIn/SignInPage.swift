/// The pages of a sign-in: plain HTML without outside requests. Whatever comes from outside is escaped.
struct SignInPage {
  /// Lets the page's own style and script run, and no other.
  let nonce: String

  /// Asks for the user's token.
  func form(_ place: SignInPlace, problem: String?) -> String {
    page(
      "Sign in",
      """
      <p>\(Self.escaped(asker(place))) asks to read and change your data on this server.</p>
      \(problem.map { "<p role=\"alert\">\(Self.escaped($0))</p>" } ?? "")
      <form method="post">
      <label for="token">Your token, as <code>cairn user</code> printed it</label>
      <input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
      <button>Allow</button>
      </form>
      <p>Close this page if you did not ask for it.</p>
      """)
  }

  /// Shows a token to be copied.
  func shown(_ token: String) -> String {
    page("Signed in", "<p>Copy this token into the program. It is shown once.</p><p><code>\(token)</code></p>")
  }

  /// Tells the window that opened the page.
  func told(_ origin: String, _ token: String) -> String {
    // Both are texts without signs that could end a script's text: an origin that was compared with the app's, and a token.
    page(
      "Signed in",
      """
      <p id="state">You can close this page.</p>
      <script nonce="\(nonce)">
      if (window.opener) {
        window.opener.postMessage({ckWebAuthToken: "\(token)", ckSession: "\(token)"}, "\(Self.escaped(origin))");
        window.close();
      } else {
        document.getElementById("state").textContent = "The page that asked is gone: ask again.";
      }
      </script>
      """)
  }

  func refused(_ reason: String) -> String { page("Not possible", "<p role=\"alert\">\(Self.escaped(reason)).</p>") }

  private func asker(_ place: SignInPlace) -> String {
    let name = place.app.map { "The app “\($0.name)”" } ?? "A program"
    switch place.destination {
    case .callback(let url): return "\(name) at \(SignInPlace.origin(of: url) ?? url)"
    case .opener(let origin): return "\(name) at \(origin)"
    case .shown: return name
    }
  }

  private func page(_ title: String, _ content: String) -> String {
    """
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>\(title)</title>
    <style nonce="\(nonce)">
    :root { color-scheme: light dark; }
    body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 30rem; margin: 10vh auto; padding: 0 1rem; }
    label, input, button { display: block; box-sizing: border-box; width: 100%; font: inherit; margin: .5rem 0; padding: .5rem; }
    label { padding: 0; }
    code { overflow-wrap: anywhere; }
    [role=alert] { border-left: .3rem solid #c33; padding-left: .7rem; }
    </style>
    </head>
    <body>
    <main>
    <h1>\(title)</h1>
    \(content)
    </main>
    </body>
    </html>

    """
  }

  static func escaped(_ text: String) -> String {
    text.reduce(into: "") { result, character in
      switch character {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.append(character)
      }
    }
  }
}
