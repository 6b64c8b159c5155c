"""Schemas of messages: their fields, and how bytes become them. Below frames and the application; knows neither."""
