import { Injectable } from '@nestjs/common';

/**
 * Whether this replica is about to stop. It still answers everything, but says that it is not ready, so that balancers send
 * new requests elsewhere before it closes its listener.
 */
@Injectable()
export class Draining {
  private readonly listeners: (() => void)[] = [];
  private begun = false;

  get hasBegun(): boolean {
    return this.begun;
  }

  /** Called once, when draining begins. */
  onBegin(listener: () => void): void {
    this.listeners.push(listener);
  }

  begin(): void {
    if (!this.begun) {
      this.begun = true;
      this.listeners.forEach((listener) => listener());
    }
  }
}
