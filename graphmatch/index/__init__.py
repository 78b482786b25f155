"""The index: which subscriptions a publication may meet, found on integers."""
