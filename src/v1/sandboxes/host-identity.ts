import { randomBase62 } from '../../common/crypto/random-base62.js';

/** Which machine this process serves sandboxes on, and which of its processes this one is. */
export class HostIdentity {
  /** Names this process in leases; no other process, earlier or later, has it. */
  readonly processId: string;

  /** @param id `HOST_ID`, or what is kept in `DATA_DIR` */
  constructor(readonly id: string) {
    this.processId = `${id}/${randomBase62(16)}`;
  }
}
