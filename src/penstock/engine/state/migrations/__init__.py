"""How the state tables came to be: numbered, frozen once released."""
