"""What an attacker learns from reports, and what ε does not cover.

    python docs/tutorials/2_what_an_attacker_learns.py

ε limits what anyone can learn. How much does an attacker learn from one report of a person, from a
month of reports, or from all of them? And what does ε not cover?
"""

import rappor
from rappor import attack

params = rappor.Params.preset("windows")  # f = .5, p = .5, q = .75, h = 2

# 1. One report. An attacker who sees one report and guesses which of two values a person holds is
#    right in 60 % of cases; tossing a coin is right in 50 %.
one = attack.run("single", params, trials=20_000, seed=1)
print(f"one report: right in {one.exact:.1%}")
# prints: one report: right in 59.5%

# 2. Thirty reports, and any number of reports. The permanent response limits what can be learnt.
for name, settings in (("window", {"reports": 30}), ("unlimited", {})):
    result = attack.run(name, params, trials=20_000, seed=1, **settings)
    print(f"{name}: right in {result.exact:.1%}")
# prints: window: right in 82.6%
# prints: unlimited: right in 84.4%

# 3. Without the memo, two hundred reports would reveal the value. Several secrets help an attacker.
without = attack.run("averaging", params, reports=200, trials=2000, seed=1)
for figure in without.figures[:2]:
    print(f"{figure.label}: {figure.exact:.1%}")
# prints: accuracy against a client with a memo: 84.4%
# prints: accuracy if B' were drawn again each time: 100.0%
print(f"two secrets of one person: right in {attack.run('secrets', params, secrets=2).exact:.1%}")
# prints: two secrets of one person: right in 92.9%

# 4. ε does not hide that a value changed: two windows of seven reports show it.
print(f"a change is seen in {attack.run('change', params, reports=7).exact:.1%}")
# prints: a change is seen in 95.8%

# 5. Each exact number is also simulated, with its standard error: the two agree.
print(abs(one.simulated - one.exact) < 4 * one.std_error)
# prints: True
