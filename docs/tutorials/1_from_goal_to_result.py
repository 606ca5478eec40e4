"""From a privacy goal to a result that can be judged: plan, simulate, decode, judge.

    python docs/tutorials/1_from_goal_to_result.py

You run a browser and want to know which homepages people have, without knowing anybody's. Before
the first report is collected, you want to know what you will be able to see. Everything below runs
in under a minute; what each step prints stands behind it, and the test suite runs this file.
"""

import rappor
from rappor import simulate

# 1. The goal. One report of a client may change the odds between any two homepages by e^1 at most,
#    all of its reports together by e^4. A hundred thousand clients will report, and you have a list
#    of 60 homepages to look for. Which parameters?
plans = rappor.plan(epsilon_one=1, epsilon_infinity=4, reports=100_000, candidates=60, check=10)
best = plans.best
print(f"k={best.params.k} h={best.params.h} m={best.params.m}, {best.bytes_per_report} bytes")
# prints: k=128 h=1 m=64, 16 bytes

# 2. The promise. ε is never above the goal, and this is the rarest homepage you will see.
print(best.epsilon_one <= 1, best.epsilon_infinity <= 4)
# prints: True True
print(f"detected with 80 % chance from {best.at(0.8).frequency:.2%}")
# prints: detected with 80 % chance from 2.45%
print("the promise holds in simulated collections:", plans.checked.holds)
# prints: the promise holds in simulated collections: True

# 3. A population to try it on: 40 homepages whose popularity falls off, and 20 more that are on
#    your list and that nobody has. Five of the 40 are missing from your list: that is the normal
#    case, and the decoder must live with it.
population = simulate.exponential(40, decay=0.9, absent=20, unlisted=5, prefix="site")
drawn = simulate.simulate(population, best.params, reports=100_000, seed=2014)
print(f"{drawn.counts.reports:,} reports in {len(drawn.counts.totals)} cohorts")
# prints: 100,000 reports in 64 cohorts

# 4. Decode. The counts and the list are all that the analyst has.
decoded = rappor.decode(drawn.counts, population.candidates, correction="fdr")
for row in decoded.detected[:3]:
    print(f"{row.string}: {row.prop_low_95:.1%} to {row.prop_high_95:.1%}")
# prints: site1: 9.2% to 11.6%
# prints: site2: 8.3% to 10.7%
# prints: site3: 7.1% to 9.5%

# 5. Judge. In a simulation the truth is known: what was found, what was missed, what is false?
judged = simulate.judge(decoded, drawn.truth)
print(f"{judged.true_positives} found, {judged.false_positives} false, {judged.missed} missed")
# prints: 18 found, 0 false, 17 missed
print(f"{judged.covered} of {judged.detected} intervals hold the truth")
# prints: 16 of 18 intervals hold the truth

# 6. What is not on the list is not hidden: it is shown as unlisted mass, with its interval.
missing = sum(drawn.truth[name] for name in population.unlisted) / drawn.counts.reports
print(f"unlisted or too rare: {decoded.unlisted.proportion:.0%}; never listed: {missing:.0%}")
# prints: unlisted or too rare: 16%; never listed: 12%

# decoded.plot().save("results.svg") draws it; `rappor plan`, `rappor simulate` and
# `rappor decode --truth` do the same on the command line.
