// CairnWire
