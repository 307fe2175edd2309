// Property tests take the same samples each time, so that a red run means that the change is to blame. Other samples are
// asked for by name: SLUICE_TEST_SEED=random, or the seed that a failure printed.
import fc from "fast-check";

const asked = process.env.SLUICE_TEST_SEED ?? "20261121";

if (asked !== "random") {
  const seed = Number(asked);
  if (!Number.isInteger(seed)) throw new Error(`SLUICE_TEST_SEED is ${asked}: give an integer, or random.`);
  fc.configureGlobal({ seed });
}
