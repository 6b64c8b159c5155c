"""Schemas of messages: their fields, and decoders of bytes. Below frames and the application; knows neither."""
