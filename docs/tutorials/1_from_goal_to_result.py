"""From a privacy goal to a result: plan, simulate, decode, compare with the truth.

    python docs/tutorials/1_from_goal_to_result.py

You make a browser and want to know which homepages people have, without knowing anyone's homepage.
Before you collect the first report, you want to know what you will be able to detect. The whole
file runs in under a minute. A comment shows what each step prints; the test suite checks it.
"""

import rappor
from rappor import simulate

# 1. The goal. One report of a client may change the odds between any two homepages by a factor of
#    e^1 at most, all of its reports together by e^4. A hundred thousand clients will report, and
#    you have a list of 60 homepages to look for. Which parameters are best?
plans = rappor.plan(epsilon_one=1, epsilon_infinity=4, reports=100_000, candidates=60, check=10)
best = plans.best
print(f"k={best.params.k} h={best.params.h} m={best.params.m}, {best.bytes_per_report} bytes")
# prints: k=128 h=1 m=64, 16 bytes

# 2. The plan. ε is never above the goal, and this is the rarest homepage you can expect to detect.
print(best.epsilon_one <= 1, best.epsilon_infinity <= 4)
# prints: True True
print(f"share detected with a chance of 80 %: {best.at(0.8).frequency:.2%}")
# prints: share detected with a chance of 80 %: 2.45%
print("a simulation contradicts the plan:", not plans.checked.holds)
# prints: a simulation contradicts the plan: False

# 3. A population to try the plan on: 40 homepages of falling popularity, and 20 more that are on
#    your list but that nobody has. Five of the 40 are missing from your list, as some always are.
population = simulate.exponential(40, decay=0.9, absent=20, unlisted=5, prefix="site")
drawn = simulate.simulate(population, best.params, reports=100_000, seed=2014)
print(f"{drawn.counts.reports:,} reports in {len(drawn.counts.totals)} cohorts")
# prints: 100,000 reports in 64 cohorts

# 4. Decode. The analyst has only the counts and the list.
decoded = rappor.decode(drawn.counts, population.candidates, correction="fdr")
for row in decoded.detected[:3]:
    print(f"{row.string}: {row.prop_low_95:.1%} to {row.prop_high_95:.1%}")
# prints: site1: 9.1% to 11.6%
# prints: site2: 8.3% to 10.7%
# prints: site3: 7.0% to 9.5%

# 5. Compare. A simulation knows the truth: what was found, what was missed, what is false?
judged = simulate.judge(decoded, drawn.truth)
print(f"{judged.true_positives} found, {judged.false_positives} false, {judged.missed} missed")
# prints: 18 found, 0 false, 17 missed
print(f"{judged.covered} of {judged.detected} intervals contain the truth")
# prints: 16 of 18 intervals contain the truth

# 6. Homepages that are not on the list still show: as undetected mass, with an interval.
missing = sum(drawn.truth[name] for name in population.unlisted) / drawn.counts.reports
print(f"undetected: {decoded.undetected_mass.proportion:.0%}; never listed: {missing:.0%}")
# prints: undetected: 16%; never listed: 12%

# decoded.plot().save("results.svg") draws a chart. On the command line, `rappor plan`,
# `rappor simulate` and `rappor decode --truth` do the same.
