/// A number with the word for what is counted: `1 table`, `2 tables`.
func counted(_ count: Int, _ one: String, _ many: String? = nil) -> String {
  "\(count) \(count == 1 ? one : many ?? one + "s")"
}
