/** What runs inside a sandbox of this specification. */
export type SandboxSpecProgram =
  | { kind: 'native'; image: string | null }
  | { kind: 'command'; command: string; args: string[] }
  | { kind: 'image'; image: string; args: string[] };

/** A kind of sandbox that users may choose; from configuration, so nobody changes it through the API. */
export interface SandboxSpec {
  id: string;
  program: SandboxSpecProgram;
  /** Shown to every user: never a secret. */
  env: Record<string, string>;
  /** Where conversations work inside the sandbox. */
  workingDir: string;
  /** How long a start may take, without the pull of an image. */
  startTimeoutSeconds: number;
  /** Null: the backend's default. */
  cpu: number | null;
  memoryMb: number | null;
  runtime: string | null;
  network: string | null;
  /** Ports for what agents start themselves, by name; also the name of the variable that tells tools the number. */
  ports: Readonly<Record<string, number>>;
  createdAt: Date;
}

/** Ports of sandboxes whose specification says nothing: names and numbers as OpenHands has them. */
export const DEFAULT_PORTS: Readonly<Record<string, number>> = { WORKER_1: 8011, WORKER_2: 8012 };
