import { Injectable } from '@nestjs/common';

/** A draining replica still answers, but is not ready, so that balancers stop sending before the listener closes. */
@Injectable()
export class Draining {
  private readonly listeners: (() => void)[] = [];
  private begun = false;

  get hasBegun(): boolean {
    return this.begun;
  }

  /** Calls the listener once, when draining begins. */
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
