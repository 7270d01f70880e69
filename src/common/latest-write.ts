/** Writes values one after the other; of those that come during a write only the last one is written. */
export class LatestWrite<T> {
  private next: { value: T } | null = null;
  private writing = false;

  constructor(
    private readonly write: (value: T) => Promise<unknown>,
    private readonly onError: (error: unknown) => void,
  ) {}

  put(value: T): void {
    this.next = { value };
    if (!this.writing) {
      this.writing = true;
      void this.drain();
    }
  }

  private async drain(): Promise<void> {
    while (this.next) {
      const { value } = this.next;
      this.next = null;
      try {
        await this.write(value);
      } catch (error) {
        this.onError(error);
      }
    }
    this.writing = false;
  }
}
