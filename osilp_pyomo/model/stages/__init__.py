"""From the stages of a Pyomo model to the template that they share: where each term belongs, and what differs."""
