"""Frames and the columns inside them. Pure; the contract is `protos/bettong/v1/frame.proto`."""
