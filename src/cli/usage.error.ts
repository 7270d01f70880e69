/** A command line that cannot be understood. The message is one line and never repeats a value that was given. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}
