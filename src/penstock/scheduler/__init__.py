"""Decide what runs when: a pure function of subscriptions, the agenda, new events and the time."""
