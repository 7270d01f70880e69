import type { FakeRequest } from '../fakes/fake-server.js';

/**
 * Counts round trips without a clock: holds requests back until a whole wave of them has arrived, then lets it go.
 * A request that needs an answer of its own wave never comes, so the wave stays incomplete and the caller's
 * deadline fails the test. What arrives after the last wave is kept in `surplus`.
 */
export class RequestWaves {
  readonly surplus: string[] = [];
  private sizes: number[] = [];
  private held: (() => void)[] = [];

  /** @param sizes Requests per wave, first wave first */
  expect(...sizes: number[]): void {
    this.sizes = sizes;
    this.held = [];
    this.surplus.length = 0;
  }

  /** Waves that were not completed. */
  get outstanding(): number {
    return this.sizes.length;
  }

  readonly gate = async (request: FakeRequest): Promise<void> => {
    const [size] = this.sizes;
    if (size === undefined) {
      this.surplus.push(request.path);
      return;
    }
    await new Promise<void>((resolve) => {
      this.held.push(resolve);
      if (this.held.length === size) {
        this.sizes.shift();
        for (const release of this.held.splice(0)) {
          release();
        }
      }
    });
  };
}
