"""What an attacker learns: the same numbers from the other side.

    python docs/tutorials/2_what_an_attacker_learns.py

ε bounds what anybody can learn. How much does somebody learn who has one report of a person, a
month of them, or all there will ever be? And what does ε not cover?
"""

import rappor
from rappor import attack

params = rappor.Params.preset("windows")  # f = .5, p = .5, q = .75, h = 2

# 1. One report. Somebody who wonders which of two values a person holds, and sees one report, is
#    right in 60 % of cases, where tossing a coin is right in 50 %.
one = attack.run("single", params, trials=20_000, seed=1)
print(f"one report: right in {one.exact:.1%}")
# prints: one report: right in 59.5%

# 2. Thirty reports, and all of them. The permanent response limits what can ever be learnt.
for name, settings in (("window", {"reports": 30}), ("unlimited", {})):
    found = attack.run(name, params, trials=20_000, seed=1, **settings)
    print(f"{name}: right in {found.exact:.1%}")
# prints: window: right in 82.6%
# prints: unlimited: right in 84.4%

# 3. Without the memo, two hundred reports would give the value away; and so do several secrets.
without = attack.run("averaging", params, reports=200, trials=2000, seed=1)
for figure in without.figures[:2]:
    print(f"{figure.label}: {figure.exact:.1%}")
# prints: accuracy against a client with a memo: 84.4%
# prints: accuracy if B' were drawn again each time: 100.0%
print(f"two secrets of one person: right in {attack.run('secrets', params, secrets=2).exact:.1%}")
# prints: two secrets of one person: right in 92.9%

# 4. What ε does not cover: that a value changed. Two windows of seven reports show it.
print(f"a change is seen in {attack.run('change', params, reports=7).exact:.1%}")
# prints: a change is seen in 95.8%

# 5. And every exact figure is simulated, with its standard error: they agree.
print(abs(one.simulated - one.exact) < 4 * one.std_error)
# prints: True
