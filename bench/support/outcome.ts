/** One line of the table at the end. */
export interface Outcome {
  what: string;
  target: string;
  measured: string;
  reached: boolean;
}
