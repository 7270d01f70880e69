/**
 * A start that cannot succeed as it was asked for. The message is shown to the user: what happened, and what to do.
 * Never a secret.
 */
export class StartFailure extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartFailure';
  }
}
