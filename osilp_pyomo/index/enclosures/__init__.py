"""What formulas and regions can be over whole boxes: intervals, enclosures with derivatives, three-valued regions."""
