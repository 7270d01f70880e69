/** A failure that the client may see, with the status that says so. */
export class HttpError extends Error {
  readonly status: number;

  /** @param detail shown as it is: never a secret */
  constructor(status: number, detail: string) {
    super(detail);
    this.name = 'HttpError';
    this.status = status;
  }
}
