import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query, UseGuards } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { AdminGuard } from './auth.guard.js';
import {
  CreateUserDto,
  SearchUsersQueryDto,
  UserIdDto,
  toUserPageDto,
  type UserPageDto,
  toUserDto,
  type UserDto,
} from './users.dto.js';
import { CreateUserOperation, DeleteUserOperation, SearchUsersOperation } from './users.openapi.js';
import { UsersService } from './users.service.js';

@ApiTags('Users')
@ApiSecurity('APIKeyHeader')
@UseGuards(AdminGuard)
@Controller('api/v1/users')
export class UsersController {
  constructor(private readonly users: UsersService) {}

  @Post()
  @CreateUserOperation()
  async create(@Body() body: CreateUserDto): Promise<UserDto> {
    return toUserDto(await this.users.create(body.email, body.name ?? null));
  }

  @Get()
  @SearchUsersOperation()
  async search(@Query() query: SearchUsersQueryDto): Promise<UserPageDto> {
    return toUserPageDto(
      await this.users.search({ email: query.email__eq }, query.limit ?? 100, query.page_id),
    );
  }

  @Delete(':id')
  @HttpCode(204)
  @DeleteUserOperation()
  async remove(@Param() { id }: UserIdDto): Promise<void> {
    await this.users.remove(id);
  }
}
