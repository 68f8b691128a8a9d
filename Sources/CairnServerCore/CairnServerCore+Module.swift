// CairnServerCore
