"""The store of the broker: tables, migrations and all queries."""
