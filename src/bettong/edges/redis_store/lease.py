"""The one lease: a key whose value names its holder, and that goes when its holder is silent.

| lease                                   | its holder's name        | taken from a holder that is not silent by |
| `bettong:{application}:lead`             | `{instance}/{process}`   | nobody                                    |
| `bettong:{application}:resident:{slot}`  | the task's incarnation   | a later task of the slot                  |
| `bettong:{application}:lease:{stream}`   | the session's token      | a session of the same client              |
| `bettong:{application}:history`          | the console's name       | nobody                                    |

A name is drawn once and never used again. That is the fence: an action under a name is carried out only while the lease
has that name, in one script, so a holder that was silent and comes late changes nothing.

Redis' clock alone says when a lease ends, and it runs from when Redis carries a command out: a holder that counts from
when it sent the command never counts too long. A Redis that lost its data has lost its leases; what each user does
then is the user's (`lead`, `leases`, `membership`).
"""

# The functions that all scripts about leases begin with. `ms`: how long the lease is to last from now on.
LEASE = """
-- Who holds it, or false, and for how many ms still.
local function holder_of(key)
  local name = redis.call('GET', key)
  return name, name and redis.call('PTTL', key) or 0
end
-- Renews it for its holder; takes it for another if nobody has it and `if_free`, or somebody has and `if_held`.
-- Whether it is the name's now.
local function hold(key, name, ms, if_free, if_held)
  local holder = redis.call('GET', key)
  if holder ~= name then
    if holder and not if_held or not holder and not if_free then return false end
  end
  redis.call('SET', key, name, 'PX', ms)
  return true
end
-- Gives it back; 0 when it was not the name's.
local function release(key, name)
  if redis.call('GET', key) ~= name then return 0 end
  return redis.call('DEL', key)
end
"""
