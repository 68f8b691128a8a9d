import Testing
@testable import CairnAccounts
