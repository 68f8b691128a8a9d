/// Waits that grow with every failure (engine section 9). Pure functions of a count and a random fraction.
public enum Backoff {
  /// The wait before try number `tries` + 1: first × 2^(tries − 1) up to `longest`, times 0.5–1, in milliseconds.
  public static func wait(tries: Int, first: Int64, longest: Int64, fraction: Double) -> Int64 {
    let shift = min(max(tries - 1, 0), 40)
    let (product, overflow) = first.multipliedReportingOverflow(by: 1 << shift)
    let full = overflow ? longest : min(product, longest)
    return max(1, Int64(Double(full) * (0.5 + 0.5 * fraction)))
  }

  /// A server's retry-after with 0–10 % on top; never less than it said. Seconds in, milliseconds out.
  public static func retryAfter(seconds: Double, fraction: Double) -> Int64 {
    let wanted = min(max(seconds, 0), 365 * 86_400) * 1_000
    return Int64((wanted * (1 + 0.1 * fraction)).rounded(.up))
  }
}
