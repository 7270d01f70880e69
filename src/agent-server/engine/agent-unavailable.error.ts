/** The agent cannot answer now; the message is for the user. */
export class AgentUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgentUnavailableError';
  }
}
