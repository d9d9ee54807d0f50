"""How keys are found: tables of chances, coins, laws of whole selections."""
