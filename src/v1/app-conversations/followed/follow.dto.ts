import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { Choice, Flag, Integer, Nested } from '@slipway/api/validation/field-decorators.js';
import { Shown, ShownOrNull } from '@slipway/api/openapi/responses.js';
import {
  FOLLOW_GOALS,
  FOLLOW_STATES,
  type FollowGoal,
  type FollowState,
  type FollowWishes,
  MAX_ROUNDS,
} from './followed-pull-request.entity.js';

@ApiSchema({ name: 'FollowRequest' })
export class FollowDto implements FollowWishes {
  @Flag('Whether failing checks make the agent go on.', { default: true, example: true }) checks = true;
  @Flag('Whether comments that are not resolved do.', { default: true, example: true }) reviews = true;
  @Flag('Whether a conflict with the target branch does.', { default: true, example: true }) conflicts = true;

  @Integer('How often at most.', { minimum: 1, maximum: MAX_ROUNDS, default: 5, example: 5 })
  max_rounds = 5;

  @Choice('What ends it.', {
    values: FOLLOW_GOALS,
    enumName: 'FollowGoal',
    default: 'green',
    example: 'green',
  })
  until: FollowGoal = 'green';
}

export function FollowField(): PropertyDecorator {
  return Nested(
    'Follows the pull request that the conversation opens: the agent goes on when a check fails, when there is a comment or a conflict, until the goal is reached. `{}`: as the defaults say.',
    { type: FollowDto, nullable: true, example: { until: 'green', max_rounds: 5 } },
  );
}

class FollowedPullRequestDto {
  @ApiProperty({ example: 'octo/app' }) repository: string;
  @ApiProperty({ type: 'integer', example: 17 }) number: number;
  @ShownOrNull(
    'Null until it was read once, unless the conversation has opened it.',
    'https://github.com/octo/app/pull/17',
  )
  url: string | null;
}

@ApiSchema({ name: 'Follow' })
export class FollowStateDto {
  @Shown('`working`: the agent works on what happened to the pull request.', 'watching', {
    enum: FOLLOW_STATES,
    enumName: 'FollowState',
  })
  state: FollowState;

  @Shown('How often it made the agent go on.', 1, { type: 'integer' }) round: number;
  @ShownOrNull('Why it ended, or cannot be read at the moment.', null) reason: string | null;

  @Shown('Null until the conversation has one.', null, { type: FollowedPullRequestDto, nullable: true })
  pull_request: FollowedPullRequestDto | null;
}
