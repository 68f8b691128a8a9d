// CairnTables
