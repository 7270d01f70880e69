import { Body, Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute, documented, thrown } from '../common/openapi/api-route.js';
import { toPageDto } from '../common/pagination/page.dto.js';
import { AdministratorsOnly } from './auth.guard.js';
import {
  CreateUserDto,
  RemoveUserQueryDto,
  SearchUsersQueryDto,
  toUserDto,
  UserDto,
  UserIdDto,
  UserPageDto,
} from './users.dto.js';
import { lastAdministrator, UsersService } from './users.service.js';

const UNKNOWN = { status: 404, detail: 'There is no user with this id.', description: 'Unknown user' };
const TAKEN = documented(409, 'A user with this email address exists already.', 'The address is taken');
const LAST_ADMINISTRATOR = thrown(lastAdministrator(), 'Nobody could get in any more');

@ApiTags('Users')
@AdministratorsOnly()
@Controller('api/v1/users')
export class UsersController {
  constructor(private readonly users: UsersService) {}

  @Post()
  @ApiRoute('create_user', 'Create a user', {
    description: 'Administrators only. Then issue a key with `user_id`.',
    status: 201,
    answer: { type: UserDto, description: 'The new user' },
    problems: [TAKEN],
    invalid: 'email',
  })
  async create(@Body() body: CreateUserDto): Promise<UserDto> {
    return toUserDto(await this.users.create(body.email, body.name ?? null));
  }

  @Get()
  @ApiRoute('search_users', 'Look up users', {
    description: 'Administrators only. In the order of email addresses.',
    answer: { type: UserPageDto, description: 'A page of users' },
  })
  async search(@Query() query: SearchUsersQueryDto): Promise<UserPageDto> {
    const page = await this.users.search({ email: query.email__eq }, query.limit, query.page_id);
    return toPageDto(page, toUserDto);
  }

  @Delete(':id')
  @ApiRoute('delete_user', 'Remove a user', {
    description:
      'Administrators only. Ends the keys and removes tokens, secrets, settings and automations of the user. Sandboxes are ' +
      'paused; with the conversations they are given to `hand_over_to`, or else kept REMOVED_USER_RETENTION_SECONDS.',
    status: 204,
    answer: { description: 'Removed' },
    problems: [UNKNOWN, LAST_ADMINISTRATOR],
  })
  async remove(
    @Param() { id }: UserIdDto,
    @Query() { hand_over_to: heir = null }: RemoveUserQueryDto,
  ): Promise<void> {
    await this.users.remove(id, heir);
  }
}
