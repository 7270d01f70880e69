/** What an agent server answered instead of what was asked for. */
export class AgentServerError extends Error {
  /**
   * @param status HTTP status; null when there was no (understandable) answer at all
   * @param detail its own words, clipped; they may be shown to the conversation's owner
   */
  constructor(
    readonly status: number | null,
    readonly detail: string,
    options?: ErrorOptions,
  ) {
    super(
      status === null
        ? `The agent server did not answer: ${detail}`
        : `The agent server answered ${status}: ${detail}`,
      options,
    );
    this.name = 'AgentServerError';
  }
}
