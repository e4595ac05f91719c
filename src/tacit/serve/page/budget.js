// Adding up what the draws of one text have cost. The rule is that of `Guarantee.then` in Python: promises add up when
// they are about the same unit, neighbors, distance and sets, and are kept apart otherwise, since no proof joins them.

/** What two guarantees must share to add up. */
export function kind(guarantee) {
  const plain = guarantee.notion === "pure" || guarantee.notion === "approximate";
  return JSON.stringify([
    plain ? "plain" : guarantee.notion,
    guarantee.model,
    guarantee.unit,
    guarantee.adjacency,
    guarantee.metric,
    guarantee.domain,
    guarantee.sensitive_share,
  ]);
}

const unitName = (unit) => (unit === "token" ? "word" : unit);

/** "per word and unit of distance": what an epsilon is counted in. */
export const perWhat = ({ unit, metric }) => `per ${unitName(unit)}${metric ? " and unit of distance" : ""}`;

/** The same for a mechanism of the catalog. */
export const perUnitOf = ({ unit, notion }) => perWhat({ unit, metric: notion.includes("metric") });

/** The totals with one more answer; `draws` counts the draws that its guarantee already covers together. */
export function added(totals, guarantee, draws) {
  const same = kind(guarantee);
  const before = totals.find((total) => total.kind === same);
  const now = {
    kind: same,
    per: perWhat(guarantee),
    mechanisms: [...new Set([...(before?.mechanisms ?? []), guarantee.mechanism])],
    draws: (before?.draws ?? 0) + draws,
    epsilon: (before?.epsilon ?? 0) + guarantee.epsilon,
    delta: (before?.delta ?? 0) + guarantee.delta,
    private: (before?.private ?? true) && guarantee.notion !== "none",
  };
  return before ? totals.map((total) => (total === before ? now : total)) : [...totals, now];
}
