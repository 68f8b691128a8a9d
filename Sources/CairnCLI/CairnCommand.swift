@main enum CairnCommand { static func main() {} }
