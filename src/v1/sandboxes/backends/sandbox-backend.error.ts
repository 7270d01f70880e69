/** A sandbox could not be started, stopped or looked at. The message is safe to show and says what to do. */
export class SandboxBackendError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SandboxBackendError';
  }
}
