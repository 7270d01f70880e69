import { CLONE_FILTERS, MAX_CLONE_DEPTH } from '@slipway/common/clone-part.js';
import { Choice, Integer } from '../common/validation/field-decorators.js';

export function CloneDepthField(): PropertyDecorator {
  return Integer('How many commits of each branch are cloned; null: all of them.', {
    nullable: true,
    minimum: 1,
    maximum: MAX_CLONE_DEPTH,
    example: 50,
  });
}

export function CloneFilterField(): PropertyDecorator {
  return Choice(
    'What a clone leaves out until git asks for it: files of older commits (`blob:none`), or their folders too (`tree:0`); null: nothing. Hosts without partial clones send everything.',
    { values: CLONE_FILTERS, nullable: true, example: 'blob:none' },
  );
}
