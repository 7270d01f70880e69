/** What runs inside a sandbox of this specification. */
export type SandboxSpecProgram =
  | { kind: 'native'; image: string | null }
  | { kind: 'command'; command: string; args: string[] }
  | { kind: 'image'; image: string; args: string[] };

/** A kind of sandbox that users may choose. It comes from the configuration; the API cannot change it. */
export interface SandboxSpec {
  id: string;
  program: SandboxSpecProgram;
  /** Shown to every user: never a secret. */
  env: Record<string, string>;
  /** Where conversations work inside the sandbox. */
  workingDir: string;
  /** How long a start may take, not counting the pull of an image. */
  startTimeoutSeconds: number;
  /** Null: the backend's default. */
  cpu: number | null;
  memoryMb: number | null;
  runtime: string | null;
  network: string | null;
  /** What holds for pods of a cluster only. Null members: the backend's default. */
  pod: { volumeSize: string | null; storageClass: string | null; serviceAccount: string | null } | null;
  /** Ports for what agents start themselves, by name. The name is also that of the variable with the number. */
  ports: Readonly<Record<string, number>>;
  createdAt: Date;
}

/** What clients of OpenHands assume. Each backend keeps it where it can. */
export const DEFAULT_WORKING_DIR = '/workspace/project';
/** For specifications that list no ports; the names and numbers are those of OpenHands. */
export const DEFAULT_PORTS: Readonly<Record<string, number>> = { WORKER_1: 8011, WORKER_2: 8012 };
