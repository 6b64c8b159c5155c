"""The one implementation of leases: a key whose value names its holder, and that expires unless it is renewed.

| lease                                   | its holder's name        | who may take it from a live holder        |
| `bettong:{application}:lead`             | `{instance}/{process}`   | nobody                                    |
| `bettong:{application}:resident:{slot}`  | the task's incarnation   | a later task of the slot                  |
| `bettong:{application}:lease:{stream}`   | the session's token      | a session of the same client              |
| `bettong:{application}:history`          | the console's name       | nobody                                    |

A name is never reused. That is the fence: an action under a name is carried out only while the lease has that name, in
one script, so a holder that lost its lease and acts late changes nothing.

Only Redis's clock decides when a lease expires, counted from when Redis runs the command: a holder that counts from
when it sent the command never counts too long. A Redis that lost its data has lost its leases; for how each user
handles that see `lead`, `leases`, `membership`.
"""

# The functions with which all scripts about leases begin. `ms`: how long the lease lasts from now on.
LEASE = """
-- The holder, or false, and the remaining ms.
local function holder_of(key)
  local name = redis.call('GET', key)
  return name, name and redis.call('PTTL', key) or 0
end
-- Renews the lease for its holder; acquires it for another if it is free and `if_free`, or held and `if_held`.
-- Returns whether `name` holds it now.
local function hold(key, name, ms, if_free, if_held)
  local holder = redis.call('GET', key)
  if holder ~= name then
    if holder and not if_held or not holder and not if_free then return false end
  end
  redis.call('SET', key, name, 'PX', ms)
  return true
end
-- Releases the lease; 0 if `name` does not hold it.
local function release(key, name)
  if redis.call('GET', key) ~= name then return 0 end
  return redis.call('DEL', key)
end
"""
