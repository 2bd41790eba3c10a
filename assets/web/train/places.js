// Where a job runs, as a recipe's `where` says it: here, hf:FLAVOR or ray://HOST:PORT.

export const HERE = "here";

/** Whether it is a machine that costs money. */
export const isRented = (where) => Boolean(where?.startsWith("hf:"));

/** Whether it is a Ray cluster. */
export const isCluster = (where) => Boolean(where?.startsWith("ray:"));
