/** Ports of sandboxes whose specification says nothing: names and numbers as OpenHands has them. */
export const DEFAULT_PORTS: Readonly<Record<string, number>> = { WORKER_1: 8011, WORKER_2: 8012 };
