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
      <p class="faint">Close this page if you did not ask for it.</p>
      """)
  }

  /// Shows a token to be copied.
  func shown(_ token: String) -> String {
    page(
      "Signed in",
      "<p>Copy this token into the program. It is shown once.</p><p class=\"token\"><code>\(token)</code></p>")
  }

  /// Tells the window that opened the page.
  func told(_ origin: String, _ token: String) -> String {
    // Both are texts without signs that could end a script's text: an origin that was compared with the app's, and a
    // token.
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
    \(Self.style)
    </style>
    </head>
    <body>
    <main>
    <p class="brand"><svg viewBox="0 0 32 32" aria-hidden="true"><ellipse cx="16" cy="25.5" rx="12" ry="5"/><ellipse cx="16.6" cy="16" rx="8.6" ry="4.2"/><ellipse cx="15.6" cy="8" rx="5.4" ry="3.4"/></svg>Cairn</p>
    <h1>\(title)</h1>
    \(content)
    </main>
    </body>
    </html>

    """
  }

  /// The look of the console, without its files.
  private static let style = """
    :root {
      color-scheme: light dark; --ground: #fbfaf8; --panel: #fff; --text: #23272b; --faint: #5d666e; --line: #dfe1e0;
      --accent: #1f6058; --alarm: #a32525;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --ground: #16191b; --panel: #1e2225; --text: #e4e6e6; --faint: #a2abb0; --line: #353b3f; --accent: #86c9bd;
        --alarm: #f09a93;
      }
    }
    * { box-sizing: border-box; }
    body { margin: 0; background: var(--ground); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
    main {
      max-width: 28rem; margin: 10vh auto; padding: 1.6rem 1.8rem; background: var(--panel);
      border: 1px solid var(--line); border-radius: .6rem;
    }
    .brand { display: flex; align-items: center; gap: .5rem; margin: 0 0 1.2rem; font-weight: 650; }
    svg { width: 1.4rem; height: 1.4rem; fill: var(--accent); }
    h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.25; font-weight: 650; }
    p { margin: .5rem 0; overflow-wrap: anywhere; }
    form { margin: 1.2rem 0; }
    label { display: block; font-weight: 550; }
    input, button { width: 100%; margin: .4rem 0 0; padding: .55rem .7rem; border-radius: .4rem; font: inherit; }
    input { border: 1px solid var(--faint); background: var(--panel); color: var(--text); }
    button {
      margin-top: .9rem; border: 1px solid var(--accent); background: var(--accent); color: var(--panel); font-weight: 550;
      cursor: pointer;
    }
    :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
    code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
    .token { padding: .7rem .8rem; border: 1px solid var(--line); border-radius: .4rem; user-select: all; }
    .faint { color: var(--faint); font-size: .9rem; }
    [role=alert] { color: var(--alarm); font-weight: 550; }
    @media (max-width: 30rem) { main { margin: 0; min-height: 100vh; border: 0; border-radius: 0; } }
    """

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
