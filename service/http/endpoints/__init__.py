"""One file per resource. An endpoint reads its parameters, calls one use case and renders what comes back."""
