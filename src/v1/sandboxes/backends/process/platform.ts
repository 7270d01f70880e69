import type { BubblewrapPrograms } from './bubblewrap.js';
import type { UserRange } from './sandbox-users.js';

/** How sandboxes run on this machine. */
export type Platform = {
  /** util-linux's setpriv; null when it is not installed. */
  setpriv: string | null;
  /** Users that sandboxes run as; null: as we do. */
  users: UserRange | null;
} & ({ isolation: 'bwrap'; programs: BubblewrapPrograms } | { isolation: 'none' });
