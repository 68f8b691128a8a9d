// CairnTesting
