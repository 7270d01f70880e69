/** The task is gone, or another worker has it: whoever still works on it stops, and changes nothing any more. */
export class StartEnded extends Error {
  constructor() {
    super('the start is in other hands, or nobody wants it any more');
    this.name = 'StartEnded';
  }
}
