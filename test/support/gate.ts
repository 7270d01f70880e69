/** Holds a fake's answers back while a test does something else; open to begin with. */
export class Gate {
  private closed: PromiseWithResolvers<void> | null = null;
  /** Requests that came while it was closed. */
  waiting = 0;

  close(): void {
    this.waiting = 0;
    this.closed = Promise.withResolvers<void>();
  }

  open(): void {
    this.closed?.resolve();
    this.closed = null;
  }

  /** Value for a fake's option `gate`. */
  readonly pass = async (): Promise<void> => {
    if (this.closed) {
      this.waiting += 1;
      await this.closed.promise;
    }
  };
}
