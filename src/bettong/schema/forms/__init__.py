"""Kinds of fields with a form of their own, one class each. They know `fields` and `values`, and not each other."""
