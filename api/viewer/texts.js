// What the API's words are on this page.

const FINAL = new Set(["succeeded", "partly_succeeded", "failed", "cancelled"]);
const STATES = {
  queued: "waiting", splitting: "counting pages", recognizing: "reading", assembling: "finishing",
  succeeded: "read", partly_succeeded: "read in part", failed: "failed", cancelled: "cancelled",
};
const SURE = 0.9;
const DOUBTFUL = 0.6;

export const ArrivalTime = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });

export const isFinal = (each) => FINAL.has(each.state);

export const stateText = (each) => STATES[each.state] || each.state;

export const progressOf = ({ progress }) => ({
  all: progress.pages, done: progress.ok + progress.failed + progress.skipped,
});

/** The class of a line: how far its recognition is to be trusted. */
export const trust = (confidence) => {
  if (confidence >= SURE) return "";
  return confidence >= DOUBTFUL ? "is-unsure" : "is-doubtful";
};
